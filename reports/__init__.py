"""From a run's records to what a reader sees: records -> table -> story -> HTML and Markdown. Nothing here measures."""
