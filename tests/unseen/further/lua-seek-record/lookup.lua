-- balances of the customers of a list of payments: records of 64 bytes
local f = assert(io.open("customers.dat", "rb"))
local all = arg[1] and f:read("a")
local total, key = 0, 1
for n = 1, 250000 do
  key = key * 48271 % 300000
  if all then
    total = total + tonumber(all:sub(key * 64 + 48, key * 64 + 63))
  else
    f:seek("set", key * 64 + 47)
    total = total + tonumber(f:read(16))
  end
end
print(total)
