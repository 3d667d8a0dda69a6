"""Tells whether C++ lets other threads of Python run."""
import sys
import threading


def is_released_by(call):
    """Whether another thread of Python runs during `call()`, in one of a hundred attempts."""
    gate = threading.Lock()
    gate.acquire()
    ran = []

    def run():
        with gate:
            ran.append(True)
    thread = threading.Thread(target=run)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # seconds: Python itself doesn't change threads
    try:
        thread.start()
        gate.release()
        attempts = 0
        while not ran and attempts < 100:
            call()
            attempts += 1
        return bool(ran)
    finally:
        sys.setswitchinterval(interval)
        thread.join()
