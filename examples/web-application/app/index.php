<?php
// A small blog: / is the front page, /post/N a post with its comments, /random any post, and a POST to
// /upload keeps a file, which the web server then serves itself.
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$db = new mysqli('localhost', 'blog', '', 'blog');
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);

function escaped(string $text): string
{
    return htmlspecialchars($text, ENT_QUOTES);
}

// A plugin of the kind that every installation has.
function count_visit(mysqli $db, string $page): void
{
    $visit = $db->prepare('UPDATE visits SET count = count + 1 WHERE page = ?');
    $visit->bind_param('s', $page);
    $visit->execute();
}

function front_page(mysqli $db): void
{
    count_visit($db, 'front');
    echo "<h1>Blog</h1>\n<ul>\n";
    foreach ($db->query('SELECT id, title FROM posts ORDER BY id DESC LIMIT 10') as $post) {
        // A query per post.
        $count = $db->query("SELECT count(*) FROM comments WHERE post_id = {$post['id']}")->fetch_row()[0];
        echo "<li><a href=\"/post/{$post['id']}\">", escaped($post['title']), "</a> $count comments\n";
    }
    echo "</ul>\n";
}

function post(mysqli $db, int $id): void
{
    $post = $db->query("SELECT title, body FROM posts WHERE id = $id")->fetch_assoc();
    if (!$post) {
        http_response_code(404);
        echo "no such post\n";
        return;
    }
    echo '<h1>', escaped($post['title']), "</h1>\n<p>", escaped($post['body']), "</p>\n";
    foreach ($db->query("SELECT author, body FROM comments WHERE post_id = $id ORDER BY id") as $comment) {
        echo '<p>', escaped($comment['author']), ': ', escaped($comment['body']), "</p>\n";
    }
}

// Half of the readers want one of the newest posts.
function random_post(mysqli $db): int
{
    $last = (int) $db->query('SELECT max(id) FROM posts')->fetch_row()[0];
    return random_int(0, 1) ? random_int($last - 19, $last) : random_int(1, $last);
}

function upload(): void
{
    $name = bin2hex(random_bytes(8));
    $folder = $_SERVER['DOCUMENT_ROOT'] . '/uploads';
    file_put_contents("$folder/$name.part", file_get_contents('php://input'));
    rename("$folder/$name.part", "$folder/$name");
    echo "/uploads/$name\n";
}

if ($path === '/') {
    front_page($db);
} elseif (preg_match('#^/post/(\d{1,9})$#', $path, $match)) {
    post($db, (int) $match[1]);
} elseif ($path === '/random') {
    post($db, random_post($db));
} elseif ($path === '/upload' && $_SERVER['REQUEST_METHOD'] === 'POST') {
    upload();
} else {
    http_response_code(404);
    echo "no such page\n";
}
