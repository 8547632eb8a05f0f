exec /usr/bin/ruby labels.rb
