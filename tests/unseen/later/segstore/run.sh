exec ./segstore
