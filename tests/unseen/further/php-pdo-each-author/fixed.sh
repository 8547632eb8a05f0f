MODE=join; . ./run.sh
