"""The sentences of a page."""

import re

CODE = re.compile(r"^(`{3,}).*?^\1[^\S\n]*$", re.MULTILINE | re.DOTALL)
LEFT_OUT = re.compile(r"<!--(?:.|\n)*?-->|^(?:#|\||    ).*$", re.MULTILINE)


def find_sentences(markdown: str) -> list[str]:
    """Sentences of the paragraphs and lists; code, tables, headings and comments are no sentences."""
    text = LEFT_OUT.sub("\n\n", CODE.sub("\n\n", markdown))
    text = re.sub(r"\]\([^)\s]*\)", "]", text)
    found = list[str]()
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        joined = re.sub(r"^\s*(?:[-*]|\d+\.) ", "", " ".join(paragraph.split()))
        found += [one for one in re.split(r"(?<=[.!?])[\s*_)]+(?=\S)", joined) if re.search(r"\w", one)]
    return found


def count_words(text: str) -> int:
    """Words, numbers and names between spaces."""
    return len([word for word in text.split() if re.search(r"\w", word)])
