"""`hvin play`: a page on this machine where people draw maps and watch planners think."""
