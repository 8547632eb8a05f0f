exec /usr/bin/ruby requests.rb
