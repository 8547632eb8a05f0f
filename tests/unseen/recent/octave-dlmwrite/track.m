% follows a particle and keeps each position
x = [0 0 1 0.3];
for step = 1:6000
  x(1:2) += 0.01 * x(3:4);
  x(3:4) -= 0.01 * x(1:2) / (1 + norm(x(1:2))^3);
  dlmwrite("track.csv", [step x], "-append");
end
