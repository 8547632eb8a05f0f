exec ruby --disable-gems events.rb
