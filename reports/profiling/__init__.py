"""The report's sections on profiles, and the rules that check the published claims. Profilers run in harness/profile;
sections on timings are in reports/sections."""
