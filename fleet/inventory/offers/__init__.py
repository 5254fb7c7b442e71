"""What could be rented, from whom and for how much: live offers, dated tables, the team's own lists; searched, ranked, warned about."""
