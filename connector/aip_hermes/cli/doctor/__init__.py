"""`aip-hermes doctor`: whether an installation can do its work, one line per question."""
