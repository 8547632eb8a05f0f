exec ruby weblog.rb
