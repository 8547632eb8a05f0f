sed -n '2,$p' app.rb | sed "s|require 'gem\([0-9]*\)/|require_relative 'gems/gem\1/lib/gem\1/|" > direct.rb
exec ruby --disable-gems direct.rb
