"""The desk of a small hotel: a booking is confirmed to the guest when it is stored."""
from gi.repository import GLib

book = GLib.KeyFile()
book.load_from_file("bookings.ini", GLib.KeyFileFlags.NONE)
with open("confirmed.log", "a", buffering=1) as log:
    for n in range(200):
        group = f"room{n % 40}"
        book.set_string(group, f"night{n // 40}", f"guest {n}")
        book.save_to_file("bookings.ini")
        log.write(f"{group} confirmed to guest {n}\n")
print("200 bookings")
