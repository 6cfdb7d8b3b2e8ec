"""The paper's figures and tables, one declaration each, from runs that are kept."""
