# what a checker with events (EventedFileUpdateChecker) saves: no look at the files while none has changed
exec /usr/bin/ruby requests.rb 250
