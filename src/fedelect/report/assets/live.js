// The page begins here; and, if a server sent it, keeps itself up to date.

const ASK_EVERY_MS = 1000;
const LONGEST_WAIT_MS = 5000;

/** What the panels depend on: the runs by name, their selectors, and how many trials and clients their maps hold. */
const runsOffered = () => data.runs.map((run) => ({ name: run.name, labels: run.selectors.map((one) => one.label), trials: run.map.trials, clients: run.map.clients.length }));

function closePanels() {
  if (panels.length) mapView.chosen = panels.map((panel) => panel.choice);
  for (const panel of panels.splice(0)) panel.close();
}

/** Panels for the runs as they are now: what was chosen stays by name, and a run that is new gets a panel if there is room. */
function matchPanels() {
  const offered = runsOffered();
  const known = new Set(mapView.offered.map((run) => run.name));
  if (panels.length && JSON.stringify(offered) === JSON.stringify(mapView.offered)) return;
  closePanels();
  mapView.offered = offered;
  for (const { run, label, trial, open } of mapView.chosen.splice(0)) {
    const runIndex = offered.findIndex((one) => one.name === run);
    if (runIndex < 0) continue;
    const index = offered[runIndex].labels.indexOf(label);
    addPanel(runIndex, Math.max(index, 0), trial < offered[runIndex].trials ? trial : 0).details.open = open;
  }
  if (!panels.length) return addFirstPanels();
  offered.forEach((run, runIndex) => { if (!known.has(run.name) && panels.length < MOST_PANELS) addPanel(runIndex, 0, 0); });
}

/** Everything that depends on the data. */
function showAll(before) {
  const empty = !data.runs.some((run) => run.curveSlots.length);
  at("empty").hidden = !empty || !data.runs.length;
  for (const part of document.querySelectorAll(".drawn")) part.hidden = empty;
  if (empty) return closePanels();
  offerCurveChoices();
  matchCharts();
  offerMapChoices(before);
  paintKeys();
  showMaps();
  for (const [name, chart] of charts) if (!name.startsWith("Map")) chart.draw();
}

/** A CSS selector that finds the same button or table again in a part that was replaced; null for anything else. */
function lastingName(held) {
  if (held.dataset.table) return `button[data-table="${CSS.escape(held.dataset.table)}"]`;
  return held.getAttribute("role") === "region" ? `[role=region][aria-label="${CSS.escape(held.getAttribute("aria-label"))}"]` : null;
}

/** Replace the data and the text of the page by what the server sent; choices stay as they are. */
function take(news) {
  const before = stops().length;
  data = { ...data, worlds: news.worlds, runs: news.runs };
  document.title = news.title;
  document.querySelector("h1").textContent = news.title;
  for (const [name, text] of Object.entries(news.parts)) {
    const part = at(`part-${name}`);
    const focused = part.contains(document.activeElement) ? lastingName(document.activeElement) : null;
    const opened = [...part.querySelectorAll("details")].map((one) => one.open);
    part.innerHTML = text; // written and escaped by the program that serves this page; its policy lets no script run
    part.querySelectorAll("details").forEach((one, number) => { one.open = opened[number] ?? false; });
    if (focused) part.querySelector(focused)?.focus({ preventScroll: true });
  }
  showAll(before);
  paintKeys();
}

function say(text, lost = false) {
  const place = at("live");
  place.hidden = false;
  place.classList.toggle("lost", lost);
  if (place.textContent !== text) place.textContent = text;
}

/** The server's news; null if there are none after `version`. Throws if the server does not answer as it should. */
async function ask(version) {
  const answer = await fetch(`data.json?after=${encodeURIComponent(version)}`, { cache: "no-store", signal: AbortSignal.timeout(60000) });
  if (answer.status === 200) return answer.json();
  if (answer.status !== 204) throw new Error(`the server answered ${answer.status}`);
  return null;
}

/** Show the news. News that cannot be shown are no reason to doubt the connection: what went wrong is said as such. */
function takeOrSay(news) {
  try {
    take(news);
    say(news.message, news.trouble);
  } catch (error) {
    console.error(error);
    say(`The newest records came, but this page failed to show them (${error}); what you see may be wrong. Reload the page.`, true);
  }
}

/** Ask, take, wait, ask again. A server that does not answer is asked again, more slowly, until it does. */
async function follow() {
  let version = "";
  let lost = false;
  let wait = ASK_EVERY_MS;
  for (;;) {
    let news = null;
    try {
      news = await ask(version);
      if (!news && lost) version = ""; // nothing new, but the message above is not true any more: ask for all of it
      lost = false;
      wait = ASK_EVERY_MS;
    } catch {
      lost = true;
      say("The connection is lost; what you see is the last that came. Trying again.", true);
      wait = Math.min(wait * 1.5, LONGEST_WAIT_MS);
    }
    if (news) {
      takeOrSay(news);
      version = news.version;
      if (news.complete) return;
    }
    await new Promise((done) => setTimeout(done, wait));
  }
}

function switchTheme(to) {
  document.documentElement.dataset.theme = to;
  drawAll();
}

const darkNow = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
at("theme").onclick = () => switchTheme(darkNow() ? "light" : "dark");
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);

// Paper is white and narrow whatever the screen is, and nothing on it can be unfolded.
let themeBefore;
let folded = [];
addEventListener("beforeprint", () => {
  printing = true;
  themeBefore = document.documentElement.dataset.theme;
  folded = [...document.querySelectorAll("details:not([open]):not(.panel details)")];
  for (const one of folded) one.open = true;
  document.documentElement.classList.add("paper");
  switchTheme("light");
});
addEventListener("afterprint", () => {
  printing = false;
  document.documentElement.classList.remove("paper");
  for (const one of folded) one.open = false;
  if (themeBefore === undefined) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = themeBefore;
  drawAll();
});

addMapControls();
showAll(0);
paintKeys();
if (data.live) follow();
