./dump
