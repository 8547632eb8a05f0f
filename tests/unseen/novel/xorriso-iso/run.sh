xorriso -as mkisofs -quiet -r -J -o tree.iso tree && ls -l tree.iso
