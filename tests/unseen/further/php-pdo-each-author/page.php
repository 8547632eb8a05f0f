<?php
// the list of posts of a blog, with the name of each author and the number of comments
$db = new PDO('mysql:unix_socket=' . getcwd() . '/my.sock', 'root', '', [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
$db->exec('create database blog');
$db->exec('use blog');
$db->exec('create table author (id int primary key, name varchar(40))');
$db->exec('create table post (id int primary key, author int, title varchar(80))');
$db->exec('create table comment (id int primary key, post int, text varchar(80), key (post))');
$db->exec("insert into author select seq, concat('author ', seq) from seq_1_to_300");
$db->exec("insert into post select seq, 1 + seq % 300, concat('post ', seq) from seq_1_to_4000");
$db->exec("insert into comment select seq, 1 + seq * 7919 % 4000, concat('comment ', seq) from seq_1_to_20000");
$start = microtime(true);
$lines = 0;
for ($visit = 0; $visit < 3; $visit++) {
    if (($argv[1] ?? '') === 'join') {
        $rows = $db->query('select post.title, author.name, count(comment.id) from post join author on author.id = post.author left join comment on comment.post = post.id group by post.id');
        foreach ($rows as $row) $lines++;
        continue;
    }
    foreach ($db->query('select id, author, title from post')->fetchAll() as $post) {
        $name = $db->query("select name from author where id = $post[author]")->fetchColumn();
        $comments = $db->query("select count(*) from comment where post = $post[id]")->fetchColumn();
        $lines++;
    }
}
printf("%d lines, %.2f s\n", $lines, microtime(true) - $start);
