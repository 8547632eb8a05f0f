<?php
session_start();
$_SESSION['visits'] = ($_SESSION['visits'] ?? 0) + 1;
usleep(60000); // asks the shop's backend
echo "visit {$_SESSION['visits']}\n";
