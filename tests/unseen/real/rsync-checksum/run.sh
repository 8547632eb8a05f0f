for i in 1 2 3 4 5; do rsync -ac src/ dst/ || exit 1; done
