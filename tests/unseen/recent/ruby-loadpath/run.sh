exec ruby --disable-gems app.rb
