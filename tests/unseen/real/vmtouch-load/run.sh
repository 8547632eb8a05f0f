vmtouch -t lib && vmtouch lib
