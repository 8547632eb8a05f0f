export BORG_BASE_DIR=$PWD/base BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes BORG_RELOCATED_REPO_ACCESS_IS_OK=yes
borg create repo::one src && borg list repo
