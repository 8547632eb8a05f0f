exec rsync -aS --whole-file vms/ backup/
