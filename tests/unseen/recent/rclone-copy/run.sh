RCLONE_CONFIG=$PWD/rclone.conf exec rclone copy --transfers 4 home copy
