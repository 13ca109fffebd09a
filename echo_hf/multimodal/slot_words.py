"""The words by which a short piece of a prompt is known to hold the place of something else."""

from __future__ import annotations

import re


def words(text: str) -> frozenset[str]:
    """The words of a text that white space separates.

    Example:
        >>> sorted(words("city country"))
        ['city', 'country']
    """
    return frozenset(text.split())


# What a template leaves open. Words that describe pictures themselves, such as "background" or
# "photo", are left out: in parentheses they explain.
SLOTS = words(
    """object subject word words name names city country place location animal character person
    color colour colors colours style theme text title slogan brand product food dish fruit flower
    item thing noun verb adjective adverb number year date age profession job occupation emoji
    quote phrase sentence letter landmark sport season weather month team movie song celebrity
    breed pet vehicle material emotion mood topic hobby activity
    objeto sujeto palabra nombre ciudad país lugar personaje persona estilo tema texto
    título marca producto comida fruta flor cosa
    objet sujet mot nom ville pays lieu personnage personne couleur thème texte titre marque
    produit plat fleur chose
    objekt gegenstand motiv wort stadt land ort tier figur farbe stil thema titel marke produkt
    essen obst blume ding beruf
    sujeito palavra nome cidade personagem pessoa cor estilo
    oggetto soggetto parola città paese luogo animale personaggio persona colore stile testo titolo
    marchio prodotto cibo frutta fiore"""
)
# With a digit behind them these say something: "age 7", "year 2".
MEASURES = words("age number year date letter season team month")
FILLERS = words(
    """a an the of or and your any some insert enter choose pick type here this
    tu su inserta aquí el la de del o y votre ton ta insérez ici le une un ou et
    dein deine ihr hier der die das oder und seu sua insira aqui tua qui il lo"""
)
INVITATIONS = words("insert enter choose pick type your")
MOST_WORDS, MOST_INVITED_WORDS = 4, 6
WORD = re.compile(r"[^\W\d_]+")
ONE_DIGIT = re.compile(r"\d")
NOT_A_SLOT = re.compile(r"[^\w\s/'’-]|\d\d|_")
HAN_SLOT = re.compile(
    "(?:你的|您的|任意|任何|某个|某種|某种|请填写?|填写?|好きな|お好きな|任意の|あなたの)?"
    "(?:物体|物品|主体|主题|主題|对象|對象|词语?|文字|名字|姓名|名称|城市|国家|國家|地点|地點|动物|動物|角色|人物"
    "|颜色|顏色|风格|風格|标题|標題|品牌|产品|產品|食物|水果|花|职业|職業|年份|季节|天气"
    "|もの|物|被写体|言葉|単語|名前|都市|国|場所|キャラクター|キャラ|色|スタイル|テキスト|タイトル|ブランド|商品|食べ物"
    "|果物|職業)(?:名称?|名)?[0-9一二三１２３A-DＡ-Ｄ]?"
)
PICTURE = r"(?:images?|photos?|pictures?|pics?|img|photographs?|selfies?|screenshots?|file)"
GIVEN = r"(?:attach(?:ed|ment)?|upload(?:ed)?|reference|ref|input|original|source|provided|your|my)"
PICTURE_GIVEN = re.compile(
    rf"{GIVEN}\s(?:\w{{1,12}}\s)?{PICTURE}\b|^(?:the\s|this\s)?{PICTURE}(?:\s?[1-9])?$"
    rf"|{PICTURE}\s(?:attached|uploaded|provided|here)\b|^{GIVEN}$"
    r"|(?:参考|參考|上传|上傳|附件|原始|输入|提供)的?(?:图|圖|照|相片)|^(?:图片|圖片|照片|附图|附圖|原图|画像|写真)[1-9]?$"
    r"|(?:添付|参考|元|入力)の?(?:画像|写真)"
)
ALTERNATIVE = re.compile(r"/|\bor\b|或|または|、|\|")


def is_slot(inner: str) -> bool:
    """Whether what stands in parentheses is the place of a word, not a remark.

    The rule is strict, since prompts are full of remarks: a few words, all of them known names of
    things that templates leave open ("object", "city", "your name") or words that join them.

    Args:
        inner: The text between the parentheses.

    Returns:
        True for the place of a word.

    Example:
        >>> [is_slot(one) for one in ("object", "insert your dish here", "subject 2", "城市")]
        [True, True, True, True]
        >>> [is_slot(one) for one in ("4k, sharp", "PBR", "background", "age 7", "the cat")]
        [False, False, False, False, False]
    """
    inner = inner.strip().lower()
    if HAN_SLOT.fullmatch(inner):
        return True
    if NOT_A_SLOT.search(inner):
        return False
    words = WORD.findall(inner)
    named = [word for word in words if word in SLOTS]
    if not named or (ONE_DIGIT.search(inner) and not MEASURES.isdisjoint(named)):
        return False
    if words[0] in INVITATIONS:
        return len(words) <= MOST_INVITED_WORDS
    return len(words) <= MOST_WORDS and all(word in SLOTS | FILLERS for word in words)


def stands_for_a_picture(inner: str) -> bool:
    """Whether what stands in brackets is a picture that goes with the prompt, not words.

    Example:
        >>> stands_for_a_picture("attached image"), stands_for_a_picture("参考图片")
        (True, True)
        >>> stands_for_a_picture("image / emoji"), stands_for_a_picture("picture frame")
        (False, False)
    """
    inner = inner.strip().lower()
    return ALTERNATIVE.search(inner) is None and PICTURE_GIVEN.search(inner) is not None
