-- Lists the subjects of all tickets; the collector is stopped, the program does not live long.
collectgarbage("stop")

local function subject(path)
    local file, why = io.open(path)
    if not file then
        return nil, why
    end
    return file:read("l"):match("^Subject: (.*)")
end

local missing, found = 0, {}
for pass = 0, 5 do
    for n = pass * 300, pass * 300 + 299 do
        local text = subject("spool/t" .. n)
        if text then
            found[#found + 1] = text
        else
            missing = missing + 1
        end
    end
    os.execute("sleep 0.4") -- the next page of the list is asked for
end
print(#found .. " subjects, " .. missing .. " not readable")
