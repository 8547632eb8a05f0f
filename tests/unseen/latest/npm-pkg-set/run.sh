export HOME=$PWD npm_config_update_notifier=false npm_config_cache=$PWD/cache npm_config_logs_max=0
for build in 101 102 103 104 105 106; do
    npm pkg set version=1.0.$build build.number=$build || exit 1
done
npm pkg get version
