"""The documentation site: what is generated from the code, and how the pages of the repository become one site."""
