"""The planner for people: forms, pages, words and the API."""
