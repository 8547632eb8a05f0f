"""Mean over time of each point of the map."""
import numpy as np
import zarr

z = zarr.open("weather.zarr", mode="r")
total = np.zeros(z.shape[1:])
for t in range(z.shape[0]):
    total += z[t]
print(total.mean().round(2))
