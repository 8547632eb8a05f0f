exec ruby tally.rb
