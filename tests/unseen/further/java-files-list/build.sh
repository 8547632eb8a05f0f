/usr/bin/javac -d . Inbox.java
