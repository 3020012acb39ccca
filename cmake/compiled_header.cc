// What a target needs that is there for its compiled header alone (TetrionHeaders.cmake).
int main() {}
