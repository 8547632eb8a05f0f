-- Sales by region.
local input = assert(io.open(arg[1]))
input:setvbuf("full", 1 << 18)
local sums, rest = {}, ""
while true do
    local block = input:read(1 << 18)
    if not block then
        break
    end
    local whole, tail = (rest .. block):match("^(.*\n)([^\n]*)$")
    for region, amount in whole:gmatch("(%w+),(%d+),[^\n]*\n") do
        sums[region] = (sums[region] or 0) + tonumber(amount)
    end
    rest = tail
end
input:close()

local names = {}
for region in pairs(sums) do
    names[#names + 1] = region
end
table.sort(names)
local output = assert(io.open(arg[2], "w"))
for _, region in ipairs(names) do
    assert(output:write(region, "\t", sums[region], "\n"))
end
assert(output:close())
print(#names .. " regions")
