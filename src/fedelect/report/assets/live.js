// The page begins here; and, if a server sent it, keeps itself up to date.

const ASK_EVERY_MS = 1000;
const LONGEST_WAIT_MS = 5000;

/** Everything that depends on the data. */
function showAll(before) {
  const empty = !data.runs.some((run) => run.curveSlots.length);
  at("empty").hidden = !empty || !data.runs.length;
  for (const part of document.querySelectorAll(".drawn")) part.hidden = empty;
  if (empty) return;
  offerCurveChoices();
  offerMapChoices(before);
  paintKeys();
  showMaps();
  for (const [name, chart] of charts) if (!name.startsWith("Map")) chart.draw();
}

/** Replace the data and the text of the page by what the server sent; choices stay as they are. */
function take(news) {
  const before = stops().length;
  data = { ...data, runs: news.runs };
  document.title = news.title;
  document.querySelector("h1").textContent = news.title;
  for (const [name, text] of Object.entries(news.parts)) {
    const part = at(`part-${name}`);
    if (part.contains(document.activeElement) && document.activeElement.tagName === "BUTTON") continue;
    const opened = [...part.querySelectorAll("details")].map((one) => one.open);
    part.innerHTML = text; // written and escaped by the program that serves this page; its policy lets no script run
    part.querySelectorAll("details").forEach((one, number) => { one.open = opened[number] ?? false; });
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

/** Ask, take, wait, ask again. A server that does not answer is asked again, more slowly, until it does. */
async function follow() {
  let version = "";
  let lost = false;
  let wait = ASK_EVERY_MS;
  for (;;) {
    try {
      const answer = await fetch(`data.json?after=${encodeURIComponent(version)}`, { cache: "no-store", signal: AbortSignal.timeout(60000) });
      if (answer.status === 200) {
        const news = await answer.json();
        take(news);
        version = news.version;
        say(news.message, news.trouble);
        if (news.complete) return;
      } else if (answer.status !== 204) throw new Error(`the server answered ${answer.status}`);
      else if (lost) version = ""; // nothing new, but the message above is not true any more: ask for all of it
      lost = false;
      wait = ASK_EVERY_MS;
    } catch {
      lost = true;
      say("The connection is lost; what you see is the last that came. Trying again.", true);
      wait = Math.min(wait * 1.5, LONGEST_WAIT_MS);
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

// Paper is white whatever the screen is.
let themeBeforePrint;
addEventListener("beforeprint", () => { themeBeforePrint = document.documentElement.dataset.theme; switchTheme("light"); });
addEventListener("afterprint", () => {
  if (themeBeforePrint === undefined) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = themeBeforePrint;
  drawAll();
});

addCurves();
addBars();
addMapControls();
showAll(0);
paintKeys();
if (data.live) follow();
