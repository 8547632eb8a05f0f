seq -f '2026-11-23 %010.0f GET /index.html 200 17 ms from some client' 2600000 > access.log
