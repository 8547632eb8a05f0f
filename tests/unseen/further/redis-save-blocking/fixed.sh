SAVE=bgsave; . ./run.sh
