exec ruby receive.rb
