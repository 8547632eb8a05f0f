# the project moves to the new server
svnadmin create repo
svnadmin load -q repo < project.dump
svnlook youngest repo
