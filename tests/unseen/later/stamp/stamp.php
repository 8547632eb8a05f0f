<?php
// Stamps incoming forms: the library for forms only reads from a file, so each one goes through a temporary file.

class Form
{
    private array $fields = [];

    public function __construct(string $file)
    {
        foreach (file($file, FILE_IGNORE_NEW_LINES) as $line) {
            [$key, $value] = explode('=', $line, 2) + [1 => ''];
            $this->fields[$key] = $value;
        }
    }

    public function set(string $key, string $value): void
    {
        $this->fields[$key] = $value;
    }

    public function text(): string
    {
        $out = '';
        foreach ($this->fields as $key => $value) {
            $out .= "$key=$value\n";
        }
        return $out;
    }
}

function stamp(string $data, int $no): string
{
    $tmp = tempnam('tmp', 'form');
    file_put_contents($tmp, $data);
    $form = new Form($tmp);
    $form->set('received', '2026-11-23');
    $form->set('number', (string) $no);
    unlink($tmp);
    return $form->text();
}

@mkdir('tmp');
$in = fopen('forms.in', 'r');
$out = fopen('forms.out', 'w');
$no = 0;
$form = '';
while (($line = fgets($in)) !== false) {
    if ($line === "--\n") {
        fwrite($out, stamp($form, ++$no) . "--\n");
        $form = '';
        continue;
    }
    $form .= $line;
}
fclose($out);
echo "$no forms\n";
