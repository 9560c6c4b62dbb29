"""Who holds what: ring order, exact division, head placement, admission. Pure, no clock."""
