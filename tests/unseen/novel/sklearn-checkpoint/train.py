import os
import joblib, numpy
from sklearn.linear_model import SGDClassifier

rng = numpy.random.default_rng(1)
x = rng.random((3000, 400))
y = (x[:, 0] + x[:, 1] * rng.random(3000) > 0.9).astype(int)
model = SGDClassifier(random_state=1)
history = []
first = joblib.load("model.joblib")["epoch"] + 1 if os.path.exists("model.joblib") else 0
for epoch in range(first, first + 40):
    model.partial_fit(x, y, classes=[0, 1])
    history.append(model.coef_.copy())
    joblib.dump({"epoch": epoch, "model": model, "history": history}, "model.joblib")
print(epoch, model.score(x, y))
