exec ruby turn.rb
