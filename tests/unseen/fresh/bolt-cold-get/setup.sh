./sessions fill
