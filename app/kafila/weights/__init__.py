"""Where weights lie and how they get there: model folders, tensor headers, ranges, the store."""
