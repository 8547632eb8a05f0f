\set k random(1,9)
INSERT INTO event(kind, note) VALUES (:k, 'something happened');
