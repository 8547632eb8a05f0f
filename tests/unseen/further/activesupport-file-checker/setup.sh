for d in $(seq 30); do mkdir -p app/part$d; for n in $(seq 60); do echo "class Part${d}Model$n; end" > app/part$d/model$n.rb; done; done
