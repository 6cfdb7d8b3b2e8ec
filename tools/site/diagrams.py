"""State diagrams as tables: drawing them in a browser would need a library of megabytes."""

import re

DIAGRAM = re.compile(r"^```mermaid\nstateDiagram-v2\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ARROW = re.compile(r"^\s*(\S+) --> (\S+?)(?::\s*(.*))?$", re.MULTILINE)
ENDS = {"[*]": "start"}


def draw_states(markdown: str) -> str:
    """A page whose state diagrams are tables with a row for each arrow."""
    return DIAGRAM.sub(lambda found: make_table(found.group(1)), markdown)


def make_table(diagram: str) -> str:
    """Markdown of a diagram's arrows: state, event, next state."""
    lines = ["| state | event | next state |", "|---|---|---|"]
    for begin, end, label in ARROW.findall(diagram):
        lines.append(f"| {ENDS.get(begin, f'`{begin}`')} | {label} | {'end' if end == '[*]' else f'`{end}`'} |")
    return "\n".join(lines)
